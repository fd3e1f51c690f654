-- Lets nginx pass requests for services on by itself (docs/forward-auth.md): asks the backend who may go where, uses its
-- answer for a moment, and ends answers under way when the right to them has ended. All of it is one worker's own.
local balancer, semaphore = require "ngx.balancer", require "ngx.semaphore"
local ngx, now, find = ngx, ngx.now, string.find

local LOOK_S = 0.4 -- between two looks at the rights of requests under way; each is asked for again then
local FRESH_S = 0.4 -- how long an answer of the backend is used by all
local MOST_S = 1.4 -- and how long while one request asks again; together with the backend's own memory below 2 s
local UNKNOWN_S = 60 -- how long requests under way go on while the backend tells nothing
local ODD_S = 10 -- how long the backend passes on what goes to a task that did not answer in HTTP
local AT_ONCE = 32 -- questions of one look
local LONG_KEY = 4096 -- bytes; what is longer is asked for each time
local FORWARDING = [[^(?:x-forwarded-|forwarded:|x-real-ip:|x-scheme:|x-original-|via:|pai-relay-)]]
local OURS = {
  ["pai-session"] = true, ["__Host-pai-session"] = true,
  ["pai-link"] = true, ["__Host-pai-link"] = true,
  ["pai-xsrf"] = true, [""] = true,
}

local TOLD = { -- what the backend tells of what the task gets, by the variable of the configuration
  pai_host = "x-pai-host",
  pai_cookie = "x-pai-cookie",
  pai_authorization = "x-pai-authorization",
  pai_origin = "x-pai-origin",
  pai_encoding = "x-pai-accept-encoding",
}

local M = {}
local backend = {} -- host and port
local known, older = {}, {} -- rights by what they were asked with; `older` goes at the next look
local heads = {} -- rights by all header lines of a request without forwarding headers, and its method; until the next look
local held = {} -- rights of requests under way, with the number of those
local odd = {} -- tasks that did not answer in HTTP, and when
local numbered, count = setmetatable({}, { __mode = "v" }), 0 -- rights by their numbers

function M.start(host, port)
    backend.host, backend.port = host, port
    ngx.timer.at(LOOK_S, M.look)
end

-- Sends one question. Returns the status and the header of the answer, nothing when none came.
local function asked(question)
    for _ = 1, 2 do
        local socket = ngx.socket.tcp()
        socket:settimeouts(5000, 5000, 20000) -- the backend waits up to 10 s for a task that does not listen yet
        if not socket:connect(backend.host, backend.port) then
            return nil
        end
        local reused = (socket:getreusedtimes() or 0) > 0
        socket:send(question)
        local line = socket:receive("*l")
        local status = line and tonumber(line:match("^HTTP/1%.1 (%d%d%d)"))
        local told = {}
        while line and line ~= "" do
            line = socket:receive("*l")
            local name, value = (line or ""):match("^([%w-]+):%s*(.-)%s*$")
            if name then
                told[name:lower()] = value
            end
        end
        if line and status == 200 and told["content-length"] == "0" then
            socket:setkeepalive(10000, AT_ONCE)
        else
            socket:close()
        end
        if line and status then
            return status, told
        end
        if not reused then -- a kept connection may just have ended
            return nil
        end
    end
end

-- The variables of the configuration that are not right as they are for a request of this right.
local function changes(right, told)
    local found = {}
    for variable, header in pairs(TOLD) do
        local value = told[header] or ""
        if value ~= (right.before[variable] or "") then
            found[#found + 1] = { variable, value }
        end
    end
    -- A task may end a connection just then, so that a POST on it would fail.
    if not (told["x-pai-keep"] and right.is_reading) then
        found[#found + 1] = { "pai_tasks", "pai_once" }
    end
    return found
end

-- Asks for a right, again if it is there. Returns it, or nothing when the request must go through the backend.
local function ask(right)
    if right.is_asking then -- all wait for one answer
        right.waiting = right.waiting + 1
        right.turn:wait(20)
        return not right.is_over and right.asked_at and now() - right.asked_at <= MOST_S and right or nil
    end
    local at = now()
    right.is_asking = true
    local status, told = asked(right.question)
    right.is_asking = false
    if right.waiting > 0 then
        right.turn:post(right.waiting) -- they go on when this one yields
        right.waiting = 0
    end
    if status == 200 then
        local host, port = (told["x-pai-upstream"] or ""):match("^%[?([%x.:]+)%]?:(%d+)$")
        if host then
            right.host, right.port, right.task, right.asked_at = host, tonumber(port), told["x-pai-upstream"], at
            right.changes = changes(right, told)
            return right
        end
    end
    right.is_over = right.is_over or status == 401 or status == 404 or (status == 403 and not told["x-pai-through"])
    if status and not right.is_over then
        right.heard_at = at
    end
    return nil
end

-- Whether a request may be under way for long, or is one that only the backend understands.
local function stays(v)
    return v.pai_lasting ~= "" or v.pai_size == "much" or find(v.http_accept or "", "event-stream", 1, true)
end

local function new_right(v)
    local lines = {
        "GET /.pai/authorize HTTP/1.1",
        "Host: " .. (v.http_host or ""),
        "X-Forwarded-For: " .. v.remote_addr,
        "X-Forwarded-Method: " .. v.request_method,
        "X-Forwarded-Uri: " .. v.request_uri,
    }
    for _, name in ipairs { "Cookie", "Authorization", "Origin", "Sec-Fetch-Site", "Referer", "Accept", "Accept-Encoding" } do
        local value = v["http_" .. name:lower():gsub("-", "_")]
        if value then
            lines[#lines + 1] = name .. ": " .. value
        end
    end
    count = count + 1
    local question = table.concat(lines, "\r\n") .. "\r\n\r\n"
    local right = { question = question, number = tostring(count), waiting = 0, turn = semaphore.new() }
    right.stays = stays(v)
    right.before = { pai_host = v.http_host or "", pai_encoding = v.http_accept_encoding or "" }
    right.is_reading = (v.request_method == "GET" or v.request_method == "HEAD") and v.pai_size == ""
    numbered[right.number] = right
    return right
end

-- The header lines of a request in HTTP/1, as they came.
local function lines_of_header()
    return ngx.req.http_version() < 2 and ngx.req.raw_header(true) or nil
end

-- Whether the request names a proxy before this one, or has HTTP/2, where that has to be looked for.
local function names_proxy(lines)
    return not lines or ngx.re.find(lines, FORWARDING, "ijom")
end

local function clear_forwarding()
    for name in pairs(ngx.req.get_headers(0)) do
        if ngx.re.find(name .. ":", FORWARDING, "ijo") then
            ngx.req.clear_header(name)
        end
    end
end

-- The right of a request whose header is that of one before, which is most of them: this is quicker than its key.
local function right_by_header(v, lines)
    local head = lines and heads[lines]
    if head and head.method == v.request_method and v.pai_args == "" and v.pai_odd == "" then
        return head.right
    end
end

local function right_by_key(v)
    local key = v.pai_key
    local right = known[key] or older[key]
    if not right or right.is_over then
        right = new_right(v)
    end
    if #key <= LONG_KEY then
        known[key] = right
    end
    return right, key
end

function M.enter()
    local v = ngx.var
    local lines = lines_of_header()
    local right, key = right_by_header(v, lines), nil
    if not right or right.is_over then
        right, key = right_by_key(v)
    end
    if right.stays then
        return ngx.exec("@backend")
    end
    local age = right.asked_at and now() - right.asked_at or MOST_S + 1
    if (age > MOST_S or (age > FRESH_S and not right.is_asking)) and not ask(right) then
        key = key or v.pai_key
        known[key], older[key] = nil, nil
        return ngx.exec("@backend")
    end
    if odd[right.task] then
        return ngx.exec("@backend")
    end
    held[right] = (held[right] or 0) + 1
    ngx.ctx.right, v.pai_right = right, right.number
    if key then -- its header is not known
        if names_proxy(lines) then
            clear_forwarding()
        elseif #lines <= LONG_KEY and v.pai_args == "" and v.pai_odd == "" then
            heads[lines] = { right = right, method = v.request_method }
        end
    end
    local changed = right.changes
    for at = 1, #changed do
        v[changed[at][1]] = changed[at][2]
    end
end

function M.choose()
    local right = ngx.ctx.right
    balancer.set_current_peer(right.host, right.port)
end

local function leave(right)
    local left = held[right] - 1
    held[right] = left > 0 and left or nil
end

-- A task may not set the cookies by which the backend knows a browser. What is no HTTP would be passed on without a
-- header of ours, as HTTP/0.9, and a browser might find another in it.
function M.answer()
    if ngx.req.http_version() < 1 then
        local none = { is_over = true }
        odd[ngx.ctx.right.task] = now() -- the backend says what is wrong when it is tried again
        leave(ngx.ctx.right)
        held[none], ngx.ctx.right = 1, none
        return
    end
    local cookies = ngx.header["Set-Cookie"]
    if not cookies then
        return
    end
    local passed = {}
    for _, cookie in ipairs(type(cookies) == "table" and cookies or { cookies }) do
        local name = cookie:match("^[^;]*"):match("^%s*(.-)%s*=")
        if not OURS[name or "-"] then
            passed[#passed + 1] = cookie
        end
    end
    ngx.header["Set-Cookie"] = passed
end

function M.piece()
    local right = ngx.ctx.right
    if right and right.is_over then
        return ngx.ERROR -- the connection is closed in the middle of the answer
    end
end

function M.leave()
    local right = ngx.ctx.right
    if right then
        leave(right)
    end
end

-- The task is gone, or does not answer in HTTP. nginx has emptied `ngx.ctx` on the way here.
function M.again()
    local method = ngx.req.get_method()
    leave(numbered[ngx.var.pai_right])
    if method == "GET" or method == "HEAD" then
        return ngx.exec("@backend")
    end
    return ngx.exit(502)
end

local function look_at(right)
    ask(right)
    if now() - math.max(right.asked_at, right.heard_at or 0) > UNKNOWN_S then
        right.is_over = true
    end
end

-- Runs each LOOK_S; in a worker that ends, as after a reload, until its last request is over.
function M.look(is_ending)
    repeat
        known, older, heads = {}, known, {}
        for task, at in pairs(odd) do
            if now() - at > ODD_S then
                odd[task] = nil
            end
        end
        local due, threads = {}, {}
        for right in pairs(held) do
            if not (right.is_over or right.is_asking) and now() - right.asked_at > FRESH_S then
                due[#due + 1] = right
            end
        end
        for number, right in ipairs(due) do
            threads[#threads + 1] = ngx.thread.spawn(look_at, right)
            if #threads == AT_ONCE or number == #due then
                for _, thread in ipairs(threads) do
                    ngx.thread.wait(thread)
                end
                threads = {}
            end
        end
        if is_ending then
            ngx.sleep(LOOK_S)
        end
    until not is_ending or not next(held)
    if not is_ending then
        ngx.timer.at(LOOK_S, M.look)
    end
end

return M
