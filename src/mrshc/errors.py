"""What the user did, told apart from what went wrong with us."""


class UserError(ValueError):
    """A mistake of the user; the message says what was wanted, what came and what to do."""


class LostError(OSError):
    """Something outside that the work needs is gone; the message says what, and what to do."""
