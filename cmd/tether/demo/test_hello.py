import subprocess

out = subprocess.run(["python3", "hello.py"], capture_output=True, text=True).stdout
assert out == "hello from python\n", out
print("ok")
