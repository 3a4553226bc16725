"""Python runs this at its start, for it is on the PYTHONPATH of the function under test and of no other."""

from tests.faults.child.services import install

install()
