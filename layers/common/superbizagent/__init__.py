"""SuperBizAgent: answers to on-call questions in which every claim is tied to fetched evidence."""
