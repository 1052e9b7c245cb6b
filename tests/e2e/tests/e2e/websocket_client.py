"""A watch over WebSocket with the `websocket-client` package; the kubeconfig comes from the environment."""
import base64, json, os, ssl, time

import websocket
from kubernetes import client, config

config.load_kube_config(os.environ['KUBECONFIG'])
settings = client.Configuration.get_default_copy()
core = client.CoreV1Api()
core.create_namespaced_config_map('default', client.V1ConfigMap(metadata={'name': 'a', 'labels': {'x': 'y'}}))

PATH = '/api/v1/namespaces/default/configmaps?watch=1&labelSelector=x%3Dy'
URL = settings.host.replace('https://', 'wss://') + PATH
TRUST = {'ca_certs': settings.ssl_ca_cert}
ADMIN = {**TRUST, 'certfile': settings.cert_file, 'keyfile': settings.key_file}


def connect(url=URL, **kw):
    return websocket.create_connection(url, timeout=30, **{'sslopt': ADMIN, **kw})


def connect_once_permitted(**kw):
    """Connects when the authorizer knows the roles that were just created."""
    deadline = time.monotonic() + 20
    while True:
        try:
            return connect(**kw)
        except websocket.WebSocketBadStatusException as e:
            if e.status_code != 403 or time.monotonic() > deadline:
                raise
            time.sleep(0.02)


def event(ws):
    text = json.loads(ws.recv())
    return text['type'], text['object']['metadata']['name']


watch = connect()
assert event(watch) == ('ADDED', 'a')
watch.ping('here?')
assert watch.recv_frame().opcode == websocket.ABNF.OPCODE_PONG
core.patch_namespaced_config_map('a', 'default', {'data': {'k': 'v'}})
assert event(watch) == ('MODIFIED', 'a')
core.delete_namespaced_config_map('a', 'default')
assert event(watch) == ('DELETED', 'a')
watch.close()

# The server ends a watch whose time is over.
watch = connect(URL + '&timeoutSeconds=1')
opcode, payload = watch.recv_data()
assert opcode == websocket.ABNF.OPCODE_CLOSE and payload == b'\x03\xe8', (opcode, payload)

# Events in protobuf are binary.
core.create_namespaced_config_map('default', client.V1ConfigMap(metadata={'name': 'b', 'labels': {'x': 'y'}}))
watch = connect(header=['Accept: application/vnd.kubernetes.protobuf;stream=watch'])
opcode, payload = watch.recv_data()
assert opcode == websocket.ABNF.OPCODE_BINARY and b'k8s\0' in payload, (opcode, payload)
watch.close()

# A browser can set no headers: its token is a subprotocol.
core.create_namespaced_service_account('default', client.V1ServiceAccount(metadata={'name': 'browser'}))
token = core.create_namespaced_service_account_token('browser', 'default', client.AuthenticationV1TokenRequest(
    spec=client.V1TokenRequestSpec(audiences=[]))).status.token
rbac = client.RbacAuthorizationV1Api()
rbac.create_cluster_role(client.V1ClusterRole(
    metadata={'name': 'watcher'}, rules=[client.V1PolicyRule(api_groups=[''], resources=['configmaps'], verbs=['watch'])]))
rbac.create_cluster_role_binding(client.V1ClusterRoleBinding(
    metadata={'name': 'watcher'}, role_ref=client.V1RoleRef(api_group='rbac.authorization.k8s.io', kind='ClusterRole', name='watcher'),
    subjects=[client.RbacV1Subject(kind='ServiceAccount', name='browser', namespace='default')]))
encoded = base64.urlsafe_b64encode(token.encode()).decode().rstrip('=')
bearer = 'base64url.bearer.authorization.k8s.io.' + encoded
watch = connect_once_permitted(sslopt=TRUST, subprotocols=[bearer, 'any'])
assert watch.getsubprotocol() == 'any', watch.getsubprotocol()
assert event(watch) == ('ADDED', 'b')
watch.close()

for refused, status in [({'suppress_origin': True}, 403), ({'subprotocols': ['a', 'b']}, 400), ({'sslopt': TRUST}, 403)]:
    try:
        connect(**refused)
        raise AssertionError(refused)
    except websocket.WebSocketBadStatusException as e:
        assert e.status_code == status, (refused, e)
print('ok')
