"""What the user did, told apart from what went wrong with us."""


class UserError(ValueError):
    """A mistake of the user; the message says what was wanted, what came and what to do."""
