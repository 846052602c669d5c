"""Kinds of studies: each module lists the tasks of a study, runs a task, and renders the results.

A task is a part of a study, such as the fit of one method to one data set. Its results are one or
more rows of the table of results.

Each module defines these functions:

- `tasks(study, folders)` checks the config and returns the list of tasks;
- `identity(study, task)` returns the columns that identify a task in the table of results;
- `run_task(study, task, folders)` returns the rows of a task;
- `render(study, results, references)` returns the results as Markdown;
- `render_brief(study, results, references)`, which is optional, returns a shorter table.

If a module defines the constant `ONE_AT_A_TIME = True`, its tasks are never run in parallel.
"""
