"""The steps from version to version, one file each."""
