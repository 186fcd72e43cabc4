"""The command `lmcourse train`, from flags to a trained model.

`main` parses a setting, `settings` puts it into a `RunConfig`, and `train_run` passes `RunConfig.training` to the
trainer, beside the model and the text. A dry run hands the finished configuration to `cost_estimate` instead.

main             the command line: its flags, what it starts, and what it prints
settings         the settings of a run by name: settings files, `run.json`, recipes and defaults
train_run        a run, from its settings to its last checkpoint; Ctrl-C, SIGTERM and SIGHUP
training_data    corpus → tokenizer and token files, and a baseline for losses on them
run_folder       the folder of a run: its lock, and checks that nothing is overwritten
"""
