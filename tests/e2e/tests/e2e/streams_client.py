"""Runs commands in a pod and connects to its ports, with the Python client, which speaks WebSocket."""

import base64

import websocket
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


def log(**options):
    """The frames of a log over WebSocket, as a browser reads it."""
    settings = client.Configuration.get_default_copy()
    url = settings.host.replace('https://', 'wss://') + '/api/v1/namespaces/default/pods/one/log'
    trust = {'ca_certs': settings.ssl_ca_cert, 'certfile': settings.cert_file, 'keyfile': settings.key_file}
    connection = websocket.create_connection(url, timeout=20, sslopt=trust, **options)
    frames = []
    while not frames or frames[-1][0] != websocket.ABNF.OPCODE_CLOSE:
        frames.append(connection.recv_data())
    assert frames[0][1] == b'', frames[0]
    return connection.getsubprotocol(), {opcode for opcode, _ in frames[:-1]}, [data for _, data in frames[1:-1]]


plain = pods.read_namespaced_pod_log('one', 'default').encode()
protocol, opcodes, messages = log()
assert (opcodes, b''.join(messages)) == ({websocket.ABNF.OPCODE_BINARY}, plain), (opcodes, messages)
protocol, opcodes, messages = log(subprotocols=['base64.binary.k8s.io'])
assert (protocol, opcodes) == ('base64.binary.k8s.io', {websocket.ABNF.OPCODE_TEXT}), (protocol, opcodes)
assert b''.join(map(base64.b64decode, messages)) == plain, messages
try:
    log(subprotocols=['v4.channel.k8s.io'])
    raise AssertionError('accepted')
except websocket.WebSocketBadStatusException as e:
    assert e.status_code == 403, e

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
