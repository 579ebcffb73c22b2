from hypothesis import settings

# The same examples in every run; their time depends on the machine.
settings.register_profile("repeatable", derandomize=True, deadline=None, max_examples=60)
settings.load_profile("repeatable")
