"""A browser that tests drive by the DevTools protocol, over pipes and without a network."""

import base64
import fcntl
import json
import os
import shutil
import time

CHROMIUM = shutil.which("chromium")
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--window-size=1300,1000",
    "--remote-debugging-pipe",
    "about:blank",
]
PATIENCE = 30.0


def pipe():
    """Return the ends of a pipe, numbered so that neither is in the way of another."""
    ends = os.pipe()
    high = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in ends]
    for end in ends:
        os.close(end)
    return high


class Browser:
    """One window of Chromium.

    Attributes
    ----------
    requests : list of str
        Addresses of all that pages asked for.
    complaints : list of str
        Errors of scripts.
    """

    def __init__(self, folder):
        commands, self.command = pipe()
        self.answer, answers = pipe()
        words = [CHROMIUM, f"--user-data-dir={folder / 'profile'}", *FLAGS]
        # Chromium reads commands from descriptor 3 and writes answers to descriptor 4.
        descriptors = [
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
            (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
            (os.POSIX_SPAWN_DUP2, commands, 3),
            (os.POSIX_SPAWN_DUP2, answers, 4),
        ]
        self.process = os.posix_spawn(CHROMIUM, words, os.environ, file_actions=descriptors)
        os.close(commands)
        os.close(answers)
        self.left, self.count, self.session = b"", 0, None
        self.requests, self.complaints = [], []
        (page,) = [
            target
            for target in self.ask("Target.getTargets")["targetInfos"]
            if target["type"] == "page"
        ]
        attached = self.ask("Target.attachToTarget", targetId=page["targetId"], flatten=True)
        self.session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.ask(f"{domain}.enable")

    def close(self):
        self.session = None
        self.ask("Browser.close")
        os.waitpid(self.process, 0)
        os.close(self.command)
        os.close(self.answer)

    def ask(self, method, **params):
        """Send a command and return its answer, noting the events before it."""
        self.count += 1
        message = {"id": self.count, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.command, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self.count:
                assert "error" not in answer, answer
                return answer["result"]
            self._note(answer)

    def _next(self):
        while b"\0" not in self.left:
            part = os.read(self.answer, 1 << 16)
            assert part, "the browser closed the pipe"
            self.left += part
        message, _, self.left = self.left.partition(b"\0")
        return json.loads(message)

    def _note(self, event):
        if event["method"] == "Network.requestWillBeSent":
            self.requests.append(event["params"]["request"]["url"])
        elif event["method"] == "Runtime.exceptionThrown":
            self.complaints.append(event["params"]["exceptionDetails"]["text"])
        elif event["method"] == "Log.entryAdded":
            self.complaints.append(event["params"]["entry"]["text"])

    def run(self, expression):
        """Return the value of an expression in the page."""
        found = self.ask(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def wait(self, expression):
        """Return the value of an expression as soon as it is true."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            if value := self.run(expression):
                return value
            time.sleep(0.02)
        raise AssertionError(f"never true: {expression}")

    def open(self, path):
        self.ask("Page.navigate", url=path.as_uri())
        self.wait("document.readyState === 'complete' && document.body !== null")

    def move(self, x, y):
        self.ask("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def click(self, x, y):
        for kind in ("mousePressed", "mouseReleased"):
            self.ask("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def screenshot(self, path):
        size = self.ask("Page.getLayoutMetrics")["cssContentSize"]
        shot = self.ask(
            "Page.captureScreenshot", captureBeyondViewport=True, clip={**size, "scale": 1}
        )
        path.write_bytes(base64.b64decode(shot["data"]))
