//! Run folders and the SQLite index over them. A folder is written once; the index can be made again from the folders.
