"""CRUD and watch with the `kubernetes` package; the kubeconfig comes from the environment."""
import os
import threading

from kubernetes import client, config, watch
from kubernetes.client.rest import ApiException

config.load_kube_config(os.environ['KUBECONFIG'])
core, apps = client.CoreV1Api(), client.AppsV1Api()

meta = client.V1ObjectMeta(name='settings', labels={'app': 'python'})
made = core.create_namespaced_config_map('default', client.V1ConfigMap(metadata=meta, data={'a': '1'}))
assert made.metadata.uid and made.metadata.resource_version, made

try:
    core.create_namespaced_config_map('default', client.V1ConfigMap(metadata=meta))
    raise AssertionError('a second one was created')
except ApiException as e:
    assert e.status == 409 and 'AlreadyExists' in e.body, e

read = core.read_namespaced_config_map('settings', 'default')
assert read.data == {'a': '1'}, read
read.data['b'] = '2'
replaced = core.replace_namespaced_config_map('settings', 'default', read)
assert replaced.data == {'a': '1', 'b': '2'}, replaced
try:
    core.replace_namespaced_config_map('settings', 'default', read)
    raise AssertionError('a stale write was accepted')
except ApiException as e:
    assert e.status == 409 and 'the object has been modified' in e.body, e
patched = core.patch_namespaced_config_map('settings', 'default', {'data': {'a': None, 'c': '3'}})
assert patched.data == {'b': '2', 'c': '3'}, patched

container = client.V1Container(name='web', image='registry.example.com/web:1')
template = client.V1PodTemplateSpec(
    metadata=client.V1ObjectMeta(labels={'app': 'python'}), spec=client.V1PodSpec(containers=[container]))
apps.create_namespaced_deployment('default', client.V1Deployment(
    metadata=client.V1ObjectMeta(name='web'),
    spec=client.V1DeploymentSpec(
        replicas=2, selector=client.V1LabelSelector(match_labels={'app': 'python'}), template=template)))
scale = apps.patch_namespaced_deployment_scale('web', 'default', {'spec': {'replicas': 4}})
assert scale.spec.replicas == 4, scale
status = apps.read_namespaced_deployment('web', 'default')
assert status.spec.strategy.type == 'RollingUpdate' and status.metadata.generation == 2, status

start = core.list_namespaced_config_map('default', label_selector='app=python')
assert [x.metadata.name for x in start.items] == ['settings'], start


def change():
    api = client.CoreV1Api()
    api.patch_namespaced_config_map('settings', 'default', {'data': {'seen': 'yes'}})
    api.delete_namespaced_config_map('settings', 'default')


threading.Thread(target=change).start()
seen = []
w = watch.Watch()
for event in w.stream(core.list_namespaced_config_map, 'default', label_selector='app=python',
                      resource_version=start.metadata.resource_version, timeout_seconds=30):
    seen.append((event['type'], event['object'].data.get('seen')))
    if event['type'] == 'DELETED':
        w.stop()
assert seen == [('MODIFIED', 'yes'), ('DELETED', 'yes')], seen
try:
    core.read_namespaced_config_map('settings', 'default')
    raise AssertionError('it is still there')
except ApiException as e:
    assert e.status == 404, e
print('ok')
