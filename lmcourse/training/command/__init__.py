"""The command `lmcourse train`, from flags to a trained model.

main             parse, resolve, estimate or train, print
settings         all settings by name: flags, settings files, `run.json`, defaults and recipes
run_config       the settings of a run, in one dataclass with three parts
cost_estimate    what a run would cost (`--dry-run`)
train_run        a run, from its settings to its last checkpoint; Ctrl-C, SIGTERM and SIGHUP
training_data    corpus → tokenizer and token files, and a baseline for losses on them
run_folder       the folder of a run: its settings, its lock, and checks that nothing is overwritten
trained_model    load the model of a run from its folder, to generate text
"""
