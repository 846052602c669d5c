"""Small faults in the source of `core/`, made by the operators of Cosmic Ray.

A mutant is one change of one expression or statement: another comparison, another arithmetic
operator, a number plus or minus one, a condition negated, a loop that is not entered, an exception
that is not caught. The tests of a module should fail for it.
"""

import ast
import random
from collections import defaultdict
from dataclasses import asdict, dataclass
from pathlib import Path

from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.operators.provider import OperatorProvider

ROOT = Path(__file__).parent.parent
CORE = Path("src/mrshc/core")
# These two need arguments that name the variables to be replaced.
_WITHOUT_ARGUMENTS = {"VariableReplacer", "VariableInserter"}


@dataclass(frozen=True, kw_only=True)
class Mutant:
    """One mutation: an operator of Cosmic Ray, applied to its n-th occurrence in a file."""

    file: str
    line: int
    operator: str
    occurrence: int

    def source(self, original):
        """Return the text of the file with the fault."""
        operator = OperatorProvider()[self.operator]()
        return mutate_code(original, operator, self.occurrence)

    def difference(self, original):
        """Return the changed line before and after."""
        before, after = original.splitlines(), self.source(original).splitlines()
        changed = next(
            i for i, pair in enumerate(zip(before, after, strict=False)) if len({*pair}) > 1
        )
        return before[changed].strip(), after[changed].strip()

    def as_row(self):
        """Return the fields by name."""
        return asdict(self)


def sample_mutants(n_mutants, seed, folders=()):
    """Draw mutants of `core/` without its kernels.

    A position in the source is drawn first and a mutation of it second: an arithmetic operator has
    eleven mutations, a negated condition one, and both should count alike.

    Parameters
    ----------
    n_mutants : int
        How many are drawn; all positions, if there are fewer.
    seed : int
        Seed of the draw.
    folders : sequence of str, default=()
        Parts of `core/`, such as "trees" or "search.py"; all without one.

    Returns
    -------
    list of Mutant
        In the order of files and lines.
    """
    positions = defaultdict(list)
    for file in sorted((ROOT / CORE).rglob("*.py")):
        part = file.relative_to(ROOT / CORE).parts[0]
        if part != "kernels" and file.name != "__init__.py" and (not folders or part in folders):
            for position, mutant in _mutations(file):
                positions[mutant.file, position].append(mutant)
    rng = random.Random(seed)
    drawn = []
    for position in rng.sample(sorted(positions), len(positions)):
        mutant = rng.choice(positions[position])
        if len(drawn) < n_mutants and _is_valid(mutant):
            drawn.append(mutant)
    return sorted(drawn, key=lambda mutant: (mutant.file, mutant.line, mutant.operator))


def _is_valid(mutant):
    """Return whether the mutant can be compiled: any test would notice one that cannot."""
    try:
        ast.parse(mutant.source((ROOT / mutant.file).read_text(encoding="utf-8")))
    except SyntaxError:
        return False
    return True


def _mutations(file):
    """Yield the position and the mutant of every mutation of a file."""
    text = file.read_text(encoding="utf-8")
    without_effect = _positions_without_effect(ast.parse(text))
    nodes = list(ast_nodes(get_ast(text)))
    provider = OperatorProvider()
    for name in provider:
        if name in _WITHOUT_ARGUMENTS:
            continue
        operator = provider[name]()
        places = [place for node in nodes for place in operator.mutation_positions(node)]
        for occurrence, (start, _) in enumerate(places):
            if start not in without_effect and not _is_inside(start, without_effect):
                relative = file.relative_to(ROOT).as_posix()
                yield (
                    start,
                    Mutant(file=relative, line=start[0], operator=name, occurrence=occurrence),
                )


def _is_inside(position, spans):
    return any(start <= position < end for start, end in spans)


def _positions_without_effect(tree):
    """Return the spans of code that is not executed or whose change no caller could notice.

    These are annotations, which Python does not evaluate here; arguments of `dataclass`, which
    forbid assignments and positional arguments that nobody writes; and abstract methods.
    """
    spans = set()
    for node in ast.walk(tree):
        parts = [getattr(node, "annotation", None), getattr(node, "returns", None)]
        for decorator in getattr(node, "decorator_list", ()):
            name = ast.unparse(decorator)
            if name.startswith("dataclass") or "abstractmethod" in name or "overload" in name:
                parts.append(decorator)
        spans |= {_span(part) for part in parts if part is not None}
    return spans


def _span(node):
    # The decorator's own position is that of the sign before it.
    return (node.lineno, max(0, node.col_offset - 1)), (node.end_lineno, node.end_col_offset)
