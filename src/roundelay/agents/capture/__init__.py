"""Later."""


class Sniffer:
    """Later."""

    def __init__(self, *a: object) -> None:
        raise PermissionError
