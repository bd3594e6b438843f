"""One judge for every metric that asks a model."""

from gate.judges.client import Judge as Judge
from gate.judges.client import Moderation as Moderation
from gate.judges.client import Spending as Spending
from gate.judges.client import open_judge as open_judge
from gate.judges.meter import Budget as Budget
from gate.judges.options import JudgeModelOptions as JudgeModelOptions
from gate.judges.options import JudgeOptions as JudgeOptions
from gate.judges.options import check as check
from gate.judges.options import fingerprint as fingerprint
from gate.judges.prompt import Answer as Answer
from gate.judges.prompt import Answers as Answers
from gate.judges.prompt import Question as Question
from gate.judges.prompt import Sample as Sample
