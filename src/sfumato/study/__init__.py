"""The study: what a run file says, checked, frozen and replayable."""

from sfumato.study.channel import ChannelSettings as ChannelSettings
from sfumato.study.run_file import read as read
from sfumato.study.run_file import read_kept as read_kept
from sfumato.study.run_file import without_trees as without_trees
from sfumato.study.run_file import write_run_file as write_run_file
from sfumato.study.sections import ALGORITHMS as ALGORITHMS
from sfumato.study.sections import ColumnSettings as ColumnSettings
from sfumato.study.sections import SearchSettings as SearchSettings
from sfumato.study.study import Study as Study
