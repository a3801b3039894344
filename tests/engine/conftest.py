from hypothesis import settings

settings.register_profile("engine", deadline=None)  # a busy machine is no failure
settings.load_profile("engine")
