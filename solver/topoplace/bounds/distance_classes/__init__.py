"""The semidefinite bound, reduced by the distance classes of a torus."""

from topoplace.bounds.distance_classes.bound import distance_classes_bound

__all__ = ["distance_classes_bound"]
