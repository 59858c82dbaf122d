-- The free seats of one claim, by what they are fit for. Seats take turns, so that load is even.
local seats = {places = {}, by_fit = {}}

for number, seat in ipairs(body.seats) do
  local place = {free = seat[1], fits = body.fits[seat[2]]}
  seats.places[number] = place
  if place.free > 0 then
    for _, fit in ipairs(place.fits) do
      local open = seats.by_fit[fit] or {order = {}, first = 1, open = 0}
      seats.by_fit[fit] = open
      open.order[#open.order + 1] = number
      open.open = open.open + 1
    end
  end
end

function seats.has(fit)
  return seats.by_fit[fit] ~= nil
end

-- The seat is full. Whether some fit has no seat left.
local function fill(place)
  local closed = false
  for _, fit in ipairs(place.fits) do
    local open = seats.by_fit[fit]
    if open then
      open.open = open.open - 1
      if open.open == 0 then
        seats.by_fit[fit] = nil
        closed = true
      end
    end
  end
  return closed
end

-- Takes a place: the seat's number, and whether some fit has no seat left now.
function seats.take(fit)
  local open = seats.by_fit[fit]
  local order = open.order
  while seats.places[order[open.first]].free == 0 do open.first = open.first + 1 end
  local number = order[open.first]
  open.first = open.first + 1
  order[#order + 1] = number
  local place = seats.places[number]
  place.free = place.free - 1
  return number, place.free == 0 and fill(place)
end
