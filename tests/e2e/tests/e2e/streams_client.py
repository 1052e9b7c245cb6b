"""Runs commands in a pod and connects to its ports, with the Python client, which speaks WebSocket."""

from kubernetes import client, config
from kubernetes.stream import portforward, stream

config.load_kube_config()
pods = client.CoreV1Api()


def start(command, **options):
    return stream(pods.connect_get_namespaced_pod_exec, 'one', 'default', command=command, stdout=True, stderr=True, **options)


assert start(['echo', 'hello'], stdin=False, tty=False) == 'hello\n'

failing = start(['fail', '3'], stdin=False, tty=False, _preload_content=False)
failing.run_forever(timeout=20)
assert failing.read_stdout() == 'some output\n'
assert failing.read_stderr() == 'some complaint\n'
assert failing.returncode == 3, failing.returncode

# All of the input is one frame.
much = 'x' * 1_000_000
reading = start(['sh', '-c', 'head -c 1000000 | wc -c'], stdin=True, tty=False, _preload_content=False)
reading.write_stdin(much)
reading.run_forever(timeout=20)
assert reading.read_stdout().strip() == '1000000'

assert pods.read_namespaced_pod_log('one', 'default').endswith('main line 3\n')

forward = portforward(pods.connect_get_namespaced_pod_portforward, 'one', 'default', ports='8080')
connection = forward.socket(8080)
connection.settimeout(20)
connection.sendall(b'ping')
answer = b''
while answer != b'8080:ping':
    answer += connection.recv(100)
connection.close()
assert forward.error(8080) is None
print('ok')
