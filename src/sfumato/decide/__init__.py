"""The choice of a release from a front, and the answers to a publisher's questions."""

from sfumato.decide.ask import Answer as Answer
from sfumato.decide.ask import ask as ask
from sfumato.decide.pick import Choice as Choice
from sfumato.decide.pick import Preset as Preset
from sfumato.decide.pick import knee_of as knee_of
from sfumato.decide.pick import knee_scale as knee_scale
from sfumato.decide.pick import pick as pick
from sfumato.decide.pick import presets as presets
