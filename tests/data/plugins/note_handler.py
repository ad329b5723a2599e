"""A handler, by the documented template: it writes notes into the file NOTES of the settings, or misbehaves."""

import os
import sys
import time

from base_handler import BaseHandler
from scutils.log_factory import LogFactory


class NoteHandler(BaseHandler):
    schema = "note_schema.json"

    def setup(self, settings):
        """Setup your plugin here."""
        self.path = settings["NOTES"]
        assert LogFactory is not None
        assert settings["REDIS_PASSWORD"] is None
        assert settings["KAFKA_HOSTS"] == ["localhost:9092"]

    def handle(self, dict):
        """Process a valid API request."""
        note = dict["note"]
        if note == "raise":
            raise ValueError("no such note")
        if note == "exit":
            sys.exit(3)
        if note == "die":
            os._exit(3)
        if note == "hang":
            time.sleep(600)
        with open(self.path, "a") as file:
            file.write("%s %s\n" % (note, dict["colour"]))
        self.logger.info("Noted", extra={"note": note})
