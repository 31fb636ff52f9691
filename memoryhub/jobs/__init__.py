"""The door for the clock: what runs later, and what runs by itself.

handlers.py   kind of job -> the one service or flow that does it
schedule.py   what is due by itself, and how often
tasks.py      all Huey tasks: the doorbell, the sweep, the schedule
management/   the command line
"""
