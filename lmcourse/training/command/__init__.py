"""`lmcourse train`, from flags to a trained model.

main               parse, resolve, estimate or train, print
  arguments        the flags, one per setting
  settings         all settings by name, from the fields of `RunConfig`, `TrainingConfig` and `Parallelism`
  resolve_settings settings file, command line and defaults put together
  cost_estimate    what a run would cost (`--dry-run`)
  summary          what a person reads about it
train_run          a run, from its settings to its last checkpoint
  run_config       what a person chooses
  training_data    corpus → tokenizer and token files
  loss_baseline    what a loss is worth: nats per byte, and the best there can be
  interrupt        Ctrl-C and SIGTERM between two steps
  run_lock         one process at a time in a run's folder
  failures         no memory left, no room on the disk: told in one line
  run_folder       the folder of a run, and its settings in it
trained_model      back from the folder to a model that can write
"""
