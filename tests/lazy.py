"""A table whose entries are made when they are first asked for."""


class Lazy(dict):
    """Entries by name, each made once by its function."""

    def __init__(self, makers):
        super().__init__()
        self.makers = makers

    def __missing__(self, name):
        self[name] = self.makers[name]()
        return self[name]
