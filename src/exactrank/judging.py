"""Judging plans: which documents to judge so that a decision becomes certain, and judgments of other tools."""

from exactrank.data.formats.judgment_files import read_judgments, write_judgments
from exactrank.fusion.judging import JudgingPlan, judging_plan as plan

__all__ = ["JudgingPlan", "plan", "read_judgments", "write_judgments"]
