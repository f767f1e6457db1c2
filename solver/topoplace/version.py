"""The version of the package; whatever needs it need not import the front door for it."""

__version__ = "0.1.0"
