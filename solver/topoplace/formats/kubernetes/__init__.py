"""What `kubectl get` prints as JSON or YAML: nodes, topologies, pods and the jobs they belong to.

Read in this order: `fields` (what is read of every field), `objects` (what all kinds share),
`nodes` (nodes and the machine), `topologies` (which of several is meant), `rules` (which nodes a
pod may be on), `podsets` (which domains a group of pods asks for), `assigned` (which domains Kueue
gave it), `kinds` (kinds of jobs), `groups` (their gangs and sub-groups), `jobs` (the walk through
their pods), `snapshots` (the snapshot of it all, and what cannot start, and why).
"""
