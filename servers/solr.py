"""Solr 9 with the schema of config/solr, in Jetty: Solr publishes no server of its own to Maven Central."""

from __future__ import annotations

import http.client
import shutil
from pathlib import Path

from msgspec import Struct

from servers import packages, pins, process
from servers.pins import HOST, Ports, refuse_taken
from warcmill.errors import Unavailable

NAME = "solr"
CORE = "discovery"
CONFIGSET, DOCUMENTS = "warcmill", "warcmill-documents"
READY_SECONDS = 120
SECONDS = 60
JVM = ("-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")  # it lives for minutes: a quick start counts
CONF = Path(__file__).resolve().parent.parent / "config" / "solr" / "conf"
JETTY = """<?xml version="1.0"?>
<!DOCTYPE Configure PUBLIC "-//Jetty//Configure//EN" "https://www.eclipse.org/jetty/configure_10_0.dtd">
<Configure id="Server" class="org.eclipse.jetty.server.Server">
  <Call name="addConnector"><Arg>
    <New class="org.eclipse.jetty.server.ServerConnector">
      <Arg><Ref refid="Server"/></Arg>
      <Set name="host"><SystemProperty name="jetty.host"/></Set>
      <Set name="port"><SystemProperty name="jetty.port"/></Set>
    </New></Arg></Call>
  <Set name="handler">
    <New class="org.eclipse.jetty.servlet.ServletContextHandler">
      <Set name="contextPath">/solr</Set>
      <Set name="resourceBase"><SystemProperty name="solr.install.dir"/></Set>
      <Call name="addEventListener"><Arg><New class="org.apache.solr.servlet.CoreContainerProvider"/></Arg></Call>
      <Call name="addFilter">
        <Arg>org.apache.solr.servlet.SolrDispatchFilter</Arg><Arg>/*</Arg>
        <Arg><Call class="java.util.EnumSet" name="of">
          <Arg><Get class="javax.servlet.DispatcherType" name="REQUEST"/></Arg></Call></Arg>
      </Call>
      <Call name="addServlet"><Arg>org.eclipse.jetty.servlet.DefaultServlet</Arg><Arg>/</Arg></Call>
    </New>
  </Set>
  <Set name="stopAtShutdown">true</Set>
  <Set name="stopTimeout">20000</Set>
</Configure>
"""
LOG4J = """<?xml version="1.0" encoding="UTF-8"?>
<Configuration status="warn">
  <Appenders><Console name="out"><PatternLayout pattern="%d{ISO8601} %p %c{1}: %m%n"/></Console></Appenders>
  <Loggers><Root level="info"><AppenderRef ref="out"/></Root></Loggers>
</Configuration>
"""


class SolrServer(Struct, frozen=True):
    """A Solr: its addresses, and methods to change, stop and break it."""

    folder: Path
    ports: Ports

    @property
    def url(self) -> str:
        """The URL of the server."""
        return f"http://{HOST}:{self.ports['http']}/solr"

    @property
    def core(self) -> str:
        """The URL of its first core, for `[text] solr`."""
        return f"{self.url}/{CORE}"

    def start(self) -> None:
        """Start it and wait until it answers: about 5 s. Its cores may still be loading."""
        process.start(self.folder, NAME, self._command())
        process.wait_ready(self.folder, NAME, self._answers, READY_SECONDS)

    def wait_loaded(self, core: str = CORE) -> None:
        """Wait until a core answers."""
        path = f"/{core}/admin/ping"
        process.wait_ready(self.folder, NAME, lambda: self._status(path) == http.client.OK, READY_SECONDS)

    def add(self, core: str, configset: str = CONFIGSET) -> None:
        """Make a core of one of our schemas, unless it is there: about 1 s."""
        if not (self.folder / "home" / core / "core.properties").exists():
            self._admin(f"CREATE&name={core}&configSet={configset}")
        self.wait_loaded(core)

    def remove(self, core: str) -> None:
        """Remove a core and all that is in it."""
        self._admin(f"UNLOAD&core={core}&deleteInstanceDir=true")

    def kill(self) -> None:
        """SIGKILL it: what it has acknowledged stays in its update log."""
        process.kill(self.folder, NAME)

    def stop(self) -> None:
        """SIGTERM it."""
        process.stop(self.folder, NAME)

    def _answers(self) -> bool:
        return self._status("/admin/info/system") == http.client.OK

    def _admin(self, action: str) -> None:
        status = self._status(f"/admin/cores?action={action}")
        if status != http.client.OK:
            raise Unavailable(NAME, f"it answered {status} to {action}. {process.tail(self.folder, NAME)}")

    def _status(self, path: str) -> int:
        """The status of an answer; 0 if there is none."""
        connection = http.client.HTTPConnection(HOST, self.ports["http"], timeout=SECONDS)
        try:
            connection.request("GET", f"/solr{path}")
            return connection.getresponse().status
        except (OSError, http.client.HTTPException):
            return 0
        finally:
            connection.close()

    def _command(self) -> list[str | Path]:
        values = {
            "jetty.host": HOST,
            "jetty.port": self.ports["http"],
            "solr.jetty.host": HOST,
            "solr.solr.home": self.folder / "home",
            "solr.install.dir": self.folder / "empty",
            "solr.log.dir": self.folder / "logs",
            "log4j2.configurationFile": self.folder / "log4j2.xml",
        }
        options = [f"-D{name}={value}" for name, value in values.items()]
        launcher = "org.eclipse.jetty.xml.XmlConfiguration"
        where: list[str | Path] = ["-cp", f"{packages.solr()}/lib/*", launcher, self.folder / "jetty.xml"]
        return [packages.java(), *JVM, *options, *where]


def at(work: Path, ports: Ports = pins.SOLR) -> SolrServer:
    """The server of this work folder, running or not."""
    return SolrServer(work / NAME, ports)


def up(work: Path, ports: Ports = pins.SOLR) -> SolrServer:
    """Start it unless it runs, with one core, and wait until that answers."""
    server = at(work, ports)
    if process.running(server.folder, NAME) is None:
        refuse_taken(NAME, ports)
        _prepare(server.folder)
        server.start()
    server.add(CORE)
    return server


def down(work: Path) -> list[str]:
    """End it by SIGTERM; its documents stay."""
    return [NAME] if process.stop(work / NAME, NAME) else []


def _prepare(folder: Path) -> None:
    for name in ("home", "empty", "logs"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    for configset, conf in ((CONFIGSET, CONF), (DOCUMENTS, CONF.parent / "documents")):
        shutil.copytree(conf, folder / "home" / "configsets" / configset / "conf", dirs_exist_ok=True)
    (folder / "home" / "solr.xml").write_text("<solr/>\n", encoding="ascii")
    (folder / "jetty.xml").write_text(JETTY, encoding="ascii")
    (folder / "log4j2.xml").write_text(LOG4J, encoding="ascii")
