"""The web face: REST API, dashboard and metrics. Reads `store`, writes through `actions`; only this layer is async."""
