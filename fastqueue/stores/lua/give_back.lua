#!lua flags=allow-oom
-- for each job: id token keys.. -> for each: 1 if its claim still had it
local answers = {}
while place < #ARGV do
  local id, token = argument(), argument()
  local first, last = fields()
  table.insert(answers, give_back(id, token, first <= last and ARGV[first] or nil))
end
return answers
