//! wrk's Lua scripts, run by LuaJIT: one state per thread, and one for `setup` and `done`.
