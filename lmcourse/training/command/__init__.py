"""`lmcourse train`, from flags to a trained model.

main            parse, choose, predict or train, print
  arguments     the flags, one per setting
  settings      all settings by name, from the fields of `run`, `TrainingConfig` and `Parallelism`
  choices       settings file, command line and defaults put together
  forecast      what a run would cost (`--dry-run`)
  summary       what a person reads about it
session         a run, from its settings to its last checkpoint
  run           what a person chooses
  texts         corpus → tokenizer and token files
  yardstick     what a loss is worth: nats per byte, and the best there can be
  interruption  Ctrl-C between two steps
  folder        the folder of a run, and its settings in it
trained         back from the folder to a model that can write
"""
