import pytest

from mrshc.utils.caller_warnings import warn_caller


def call_from_package(package, call):
    """Return a function of a module of a package that calls another function."""
    names = {"__name__": f"{package}.module", "call": call}
    exec(compile("def outer(warning):\n    call(warning)", f"{package}.py", "exec"), names)
    return names["outer"]


@pytest.mark.parametrize(
    "packages", [[], ["mrshc"], ["sklearn"], ["mrshc", "sklearn", "joblib", "mrshc"]], ids=" ".join
)
def test_a_warning_refers_to_the_innermost_line_outside_of_the_packages(packages):
    call = warn_caller
    for package in packages:
        call = call_from_package(package, call)
    with pytest.warns(UserWarning, match="attention") as caught:
        call(UserWarning("attention"))
    assert caught[0].filename == __file__


def test_a_package_with_a_similar_name_belongs_to_the_user():
    with pytest.warns(UserWarning, match="attention") as caught:
        call_from_package("sklearnex", warn_caller)(UserWarning("attention"))
    assert caught[0].filename == "sklearnex.py"
