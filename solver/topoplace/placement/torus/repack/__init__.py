"""Which running jobs move so that others start: `problem`, `places`, `packing`, `order`, `outcome`."""
