"""What of training brings what: ablations, few questions, a toy task."""
