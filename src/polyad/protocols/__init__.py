"""The plug-in points: components, snapshots and stores."""
