"""Other tools' files; an `InputError` names file, line, field and value.

Read in this order: `declared` (how a reader declares what it does with each field; `sources` lists
all tables), `text` and `yaml_text` (what all readers share), then one source each: `slurm`,
`kubernetes`, `topograph`, `slices`, `decisions` and the like. `beginnings` finds out whose file it
is; `topoplace.snapshot.reading` imports the reader of such a file.
"""
