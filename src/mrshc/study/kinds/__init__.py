"""Kinds of studies: each module lists the tasks of a study, runs one, and renders the results.

A module has these functions:

- `tasks(study, folders)` checks the config and returns the list of tasks;
- `identity(study, task)` returns the columns that identify the row of a task;
- `run_task(study, task, folders)` returns the rows of a task;
- `render(study, results, references)` returns the results as Markdown;
- `render_brief`, optional, with the same parameters, returns a shorter table.

With the constant `ONE_AT_A_TIME = True`, tasks are never run in parallel.
"""
