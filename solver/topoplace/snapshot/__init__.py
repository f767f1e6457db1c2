"""Documents of instances, their one reading, and the files of other tools: import the modules."""
