"""Writes what exchange-calendars knows of NYSE from 2020 to 2035, as data that owes nothing to our rules.

minutes.txt: one letter per UTC minute (n overnight, p pre, r regular, o post, c closed).
sessions.json: the weekdays without a session, and the early closes; all other sessions are 09:30 to 16:00.
"""

import json
import sys

import exchange_calendars
import numpy
import pandas

FROM, TO = "2020-01-01", "2035-12-31"
folder = sys.argv[1]
xnys = exchange_calendars.get_calendar("XNYS", start="2019-12-01", end="2036-01-31", side="left")

minutes = pandas.date_range(FROM, f"{TO} 23:59", freq="min", tz="UTC")
local = minutes.tz_convert("America/New_York")
wall = (local.hour * 60 + local.minute).to_numpy()
# From 20:00 on, a minute belongs to the next day.
day = (local.tz_localize(None) + pandas.Timedelta(hours=4)).normalize()
closes = xnys.closes.dt.tz_convert("America/New_York").dt.strftime("%H:%M")
opens = xnys.opens.dt.tz_convert("America/New_York").dt.strftime("%H:%M")
assert set(opens) == {"09:30"} and set(closes) == {"16:00", "13:00"}

is_session = day.isin(xnys.sessions)
is_early = day.isin(xnys.sessions[(closes == "13:00").to_numpy()])
is_regular = minutes.isin(xnys.minutes)
evening = wall >= 20 * 60
close = numpy.where(is_early, 13 * 60, 16 * 60)
letters = numpy.full(len(minutes), "c")
letters[is_session & (evening | (wall < 4 * 60))] = "n"
letters[is_session & ~evening & (wall >= 4 * 60) & (wall < 9 * 60 + 30)] = "p"
letters[is_session & ~evening & (wall >= close) & (wall < close + 4 * 60)] = "o"
letters[is_regular] = "r"
with open(f"{folder}/minutes.txt", "w") as file:
    file.write("".join(letters))

weekdays = pandas.date_range(FROM, TO, freq="B")
dates = lambda days: [each.strftime("%Y-%m-%d") for each in days]
early = xnys.sessions[(closes == "13:00").to_numpy()]
with open(f"{folder}/sessions.json", "w") as file:
    json.dump(
        {
            "source": f"exchange-calendars {exchange_calendars.__version__}, XNYS",
            "from": FROM,
            "to": TO,
            "closedWeekdays": dates(weekdays[~weekdays.isin(xnys.sessions)]),
            "earlyCloses": dates(early[(early >= FROM) & (early <= TO)]),
        },
        file,
    )
