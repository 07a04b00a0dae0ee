"""The study, which is the checked and frozen content of a run file."""

from sfumato.study.methods import ALGORITHMS as ALGORITHMS
from sfumato.study.sections import ChannelSettings as ChannelSettings
from sfumato.study.sections import ColumnSettings as ColumnSettings
from sfumato.study.sections import SearchSettings as SearchSettings
from sfumato.study.study import Study as Study
from sfumato.study.study import read as read
from sfumato.study.study import read_kept as read_kept
from sfumato.study.study import without_trees as without_trees
from sfumato.study.study import write_run_file as write_run_file
