"""Intake: how files come to be known. Scanning, rules, what is ignored, the settle gate in batches."""

from tidegate.intake.ignore import reason_for_path
from tidegate.intake.rules import Rules
from tidegate.intake.scan import Scanner, ScanReport
from tidegate.intake.settling import settle_due

__all__ = ["Rules", "ScanReport", "Scanner", "reason_for_path", "settle_due"]
