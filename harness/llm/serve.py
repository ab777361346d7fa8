"""Runs the llama.cpp server of the package xllamacpp for tether.

Arguments: the directory that holds xllamacpp, and the settings as JSON.
Prints {"url": ...} when the server listens. Ends when its standard input
ends, which is when tether does.
"""

import json
import os
import sys
import threading
import time


def watch():
    # Not sys.stdin: its lock is not to be held while the interpreter ends.
    while os.read(0, 4096):
        pass
    os._exit(0)


def main():
    directory, settings = sys.argv[1], json.loads(sys.argv[2])
    threading.Thread(target=watch, daemon=True).start()
    # What llama.cpp prints must not mix with the address: it goes to the log.
    answer = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    sys.path.insert(0, directory)
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = settings.pop("path")
    threads = settings.pop("threads")
    params.cpuparams.n_threads = threads
    params.cpuparams_batch.n_threads = threads
    for name, value in settings.items():
        setattr(params, name, value)
    try:
        server = xllamacpp.Server(params)
    except RuntimeError:
        # llama.cpp has said why, but a thread of its own writes it and no way of
        # ending waits for that one: on a busy machine 7 of 180 deaths were mute.
        time.sleep(0.5)
        os._exit(1)
    answer.write(json.dumps({"url": server.listening_address}) + "\n")
    answer.flush()
    threading.Event().wait()


main()
