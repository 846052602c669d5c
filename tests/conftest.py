import gc
import sys
from contextlib import suppress

import pytest


def pytest_collection_modifyitems(config, items):
    """Put slow files first: a long file that starts last would leave the other workers idle."""
    if not hasattr(config, "workerinput"):  # one process, which runs the tests in the order given
        return
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow)


def pytest_collection_finish():
    """Exempt modules and collected tests, which stay, from garbage collection: it takes long."""
    gc.freeze()


@pytest.fixture(scope="module", autouse=True)
def no_client_is_left():
    """Close a client of Dask that a failed test left; later files would wait for its workers."""
    yield
    if "distributed" in sys.modules:
        distributed = sys.modules["distributed"]
        with suppress(ValueError):  # which says that there is no client
            distributed.default_client().close(timeout=1)
        # A client that was lost leaves itself as the scheduler of all arrays of Dask.
        sys.modules["dask"].config.config.pop("scheduler", None)


@pytest.fixture
def drawn():
    """Pictures of results and comparisons; none, until a test adds some: they take long to draw."""
    from matplotlib.figure import Figure

    from command_line import without_pictures
    from mrshc import plotting
    from mrshc.plotting.result_pictures import PICTURES

    trees = plotting.dendrograms
    with without_pictures() as registered, pytest.MonkeyPatch.context() as patch:
        patch.setattr(plotting, "dendrograms", lambda *_, **__: Figure())

        def draw(name):
            if name == "dendrograms":
                patch.setattr(plotting, name, trees)
            else:
                PICTURES[name] = registered[name]

        yield draw


@pytest.fixture
def coarse_pictures(monkeypatch):
    """Write pixels of a low resolution, which takes less time."""
    from mrshc.plotting import picture_files

    plain = picture_files.save_unchanged
    monkeypatch.setattr(
        picture_files,
        "save_unchanged",
        lambda figure, target, *, file_format, dpi: plain(
            figure, target, file_format=file_format, dpi=min(dpi, 50)
        ),
    )


@pytest.fixture
def main(drawn, capsys):  # noqa: ARG001 - which takes the pictures away
    """Run the command line in this process, where it starts faster, without pictures."""
    from command_line import main_here

    return lambda *arguments: (main_here(*arguments), *capsys.readouterr())
