"""A monitor, by the documented template: it answers on the outbound topic, or misbehaves."""

import os
import time

from .kafka_base_monitor import KafkaBaseMonitor


class NoteMonitor(KafkaBaseMonitor):
    regex = "note:*:*"

    def setup(self, settings):
        """Setup kafka."""
        KafkaBaseMonitor.setup(self, settings)
        self.closed = settings["NOTES"]

    def check_precondition(self, key, value):
        """Leave what is for later."""
        return value != "later" and self.get_current_time() > 0

    def handle(self, key, value):
        """Process a valid key."""
        elements = key.split(":")
        self.redis_conn.incr("tries:%s" % elements[2])
        if value == "raise":
            raise ValueError("no such note")
        if value == "die":
            os._exit(3)
        if value == "hang":
            time.sleep(600)
        if self._send_to_kafka({"appid": elements[1], "uuid": elements[2], "value": value}):
            self.logger.info("Sent note to kafka", extra=self.get_log_dict("note", elements[1]))

    def close(self):
        """Say that it was closed."""
        with open(self.closed, "a") as file:
            file.write("closed\n")
