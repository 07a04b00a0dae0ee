"""The choice of a release from a front, and the answers to a publisher's questions.

The functions `ask` and `pick` are not imported here: they would hide the modules of the same names, and which of the
two `sfumato.decide.ask` is would depend on the order of the imports.
"""

from sfumato.decide.ask import Answer as Answer
from sfumato.decide.pick import Choice as Choice
from sfumato.decide.pick import Preset as Preset
