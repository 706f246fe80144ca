-- What a script finds when it begins: the table `wrk`, and behind it the steps that the generator takes.
-- `host` is filled by the generator for as long as names and addresses may be asked for.
local host = ...

local type, rawget, tostring, pairs, error = type, rawget, tostring, pairs, error
local concat, remove, length = table.concat, table.remove, string.len
local stdout = io.stdout
local new_table = require "table.new"
local globals = _G

wrk = {
   scheme = "http",
   host = "localhost",
   method = "GET",
   path = "/",
   headers = {},
}
package.loaded.wrk = wrk

-- The system's libraries for native code are not part of a script's world here.
package.preload.ffi = function()
   error("the module ffi is not available to scripts", 0)
end

-- The global function of that name, if the script defines one.
local function hook(name)
   local value = rawget(globals, name)
   return type(value) == "function" and value or nil
end

-- Asks the generator; an error belongs to the line that called our caller.
local function ask(question, ...)
   local answer = host[question]
   if not answer then
      error("wrk." .. question .. " can be called while the script is loaded, in setup, init and done, "
         .. "but not while requests are made", 3)
   end
   local value, problem = answer(...)
   if problem then
      error(problem, 3)
   end
   return value
end

function wrk.lookup(name, service)
   local addresses = ask("lookup", name, service)
   return addresses
end

function wrk.connect(address)
   local accepted = ask("connect", address)
   return accepted
end

-- Leaves in `wrk.addrs` the addresses of a name that accept connections.
function wrk.resolve(name, service)
   local addresses = wrk.lookup(name, service)
   for index = #addresses, 1, -1 do
      if not wrk.connect(addresses[index]) then
         remove(addresses, index)
      end
   end
   wrk.addrs = addresses
end

-- An address in brackets if it has colons, the port if the URL had one.
local function authority()
   local name, port = wrk.host, wrk.port
   if name:find(":", 1, true) then
      name = "[" .. name .. "]"
   end
   return port and name .. ":" .. port or name
end

local function names_host(fields)
   for name in pairs(fields) do
      if tostring(name):lower() == "host" then
         return true
      end
   end
   return false
end

function wrk.format(method, path, headers, body)
   local fields = headers or wrk.headers
   local content = body or wrk.body
   if not fields.Host then
      fields.Host = wrk.headers.Host
   end
   -- Scripts see, and rely on, both fields in the table that they gave.
   fields["Content-Length"] = content and length(content)
   local lines = { tostring(method or wrk.method) .. " " .. tostring(path or wrk.path) .. " HTTP/1.1" }
   local count = 1
   for name, value in pairs(fields) do
      count = count + 1
      lines[count] = tostring(name) .. ": " .. tostring(value)
   end
   lines[count + 1] = ""
   lines[count + 2] = content or ""
   return concat(lines, "\r\n")
end

function wrk.setup(thread)
   local setup = hook("setup")
   if setup then
      setup(thread)
   end
end

function wrk.init(arguments)
   if not names_host(wrk.headers) then
      wrk.headers.Host = authority()
   end
   local init = hook("init")
   if init then
      init(arguments)
   end
   local rendered = wrk.format()
   function wrk.request()
      return rendered
   end
end

-- The steps. Hooks are looked up at every call: scripts replace them while they run.
local steps = {}

function steps.defines(name)
   return hook(name) ~= nil
end

function steps.setup(thread)
   wrk.setup(thread)
end

function steps.init(arguments)
   wrk.init(arguments)
end

function steps.delay()
   local delay = rawget(globals, "delay")
   if type(delay) == "function" then
      return (delay())
   end
end

function steps.request()
   local request = rawget(globals, "request")
   if type(request) ~= "function" then
      request = wrk.request
   end
   return (request())
end

-- The fields come as name, value, name, value.
function steps.response(status, body, ...)
   local response = rawget(globals, "response")
   if type(response) == "function" then
      local fields = { ... }
      local headers = new_table(0, #fields / 2)
      for index = 1, #fields, 2 do
         headers[fields[index]] = fields[index + 1]
      end
      response(status, headers, body)
   end
end

function steps.done(summary, latency, requests)
   local done = hook("done")
   if done then
      done(summary, latency, requests)
   end
end

-- What scripts printed comes out before what the generator prints next.
function steps.flush()
   stdout:flush()
end

return steps
