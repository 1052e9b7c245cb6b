"""An operator with `kopf`: it keeps a ConfigMap for each Greeting, tells of it in the status, and cleans up behind a finalizer."""
import asyncio
import os
import threading
import time

import kopf
from kubernetes import client, config
from kubernetes.client.rest import ApiException

GROUP, VERSION, PLURAL, NAMESPACE = 'example.com', 'v1', 'greetings', 'default'
config.load_kube_config(os.environ['KUBECONFIG'])
core, custom = client.CoreV1Api(), client.CustomObjectsApi()


@kopf.on.startup()
def settings(settings: kopf.OperatorSettings, **_):
    settings.posting.enabled = True
    settings.persistence.finalizer = 'example.com/kopf'


@kopf.on.create(GROUP, VERSION, PLURAL)
def create(spec, name, namespace, body, **_):
    made = {'metadata': {'name': name}, 'data': {'text': f"hello {spec['to']}"}}
    kopf.adopt(made, owner=body)
    core.create_namespaced_config_map(namespace, made)
    kopf.info(body, reason='Greeted', message=f"hello {spec['to']}")
    return {'to': spec['to']}


@kopf.on.update(GROUP, VERSION, PLURAL, field='spec.to')
def update(new, name, namespace, **_):
    core.patch_namespaced_config_map(name, namespace, {'data': {'text': f'hello {new}'}})


@kopf.on.delete(GROUP, VERSION, PLURAL)
def delete(name, namespace, **_):
    core.delete_namespaced_config_map(name, namespace)


def until(what, holds, seconds=60):
    """Waits for a condition; what is not there yet does not hold."""
    end = time.time() + seconds
    while True:
        try:
            value = holds()
            if value:
                return value
        except ApiException as e:
            if e.status != 404:
                raise
        assert time.time() < end, f'waited in vain: {what}'
        time.sleep(0.1)


def gone(read):
    try:
        read()
    except ApiException as e:
        assert e.status == 404, e
        return True


client.ApiextensionsV1Api().create_custom_resource_definition({
    'apiVersion': 'apiextensions.k8s.io/v1', 'kind': 'CustomResourceDefinition',
    'metadata': {'name': f'{PLURAL}.{GROUP}'},
    'spec': {
        'group': GROUP, 'scope': 'Namespaced',
        'names': {'plural': PLURAL, 'singular': 'greeting', 'kind': 'Greeting', 'listKind': 'GreetingList'},
        'versions': [{
            'name': VERSION, 'served': True, 'storage': True, 'subresources': {'status': {}},
            'schema': {'openAPIV3Schema': {'type': 'object', 'properties': {
                'spec': {'type': 'object', 'required': ['to'], 'properties': {'to': {'type': 'string'}}},
                'status': {'type': 'object', 'x-kubernetes-preserve-unknown-fields': True}}}},
        }],
    },
})
until('the resource', lambda: custom.list_namespaced_custom_object(GROUP, VERSION, NAMESPACE, PLURAL))

stop, failed = threading.Event(), []


def run():
    try:
        asyncio.run(kopf.operator(stop_flag=stop, namespaces=[NAMESPACE], standalone=True))
    except BaseException as e:
        failed.append(e)


operator = threading.Thread(target=run)
operator.start()
try:
    greeting = {'apiVersion': f'{GROUP}/{VERSION}', 'kind': 'Greeting', 'metadata': {'name': 'g'}, 'spec': {'to': 'you'}}
    custom.create_namespaced_custom_object(GROUP, VERSION, NAMESPACE, PLURAL, greeting)
    read = lambda: custom.get_namespaced_custom_object(GROUP, VERSION, NAMESPACE, PLURAL, 'g')
    made = until('the config map', lambda: core.read_namespaced_config_map('g', NAMESPACE))
    assert made.data == {'text': 'hello you'}, made
    assert [owner.kind for owner in made.metadata.owner_references] == ['Greeting'], made
    told = until('the status', lambda: read().get('status', {}).get('create'))
    assert told == {'to': 'you'}, told
    assert read()['metadata']['finalizers'] == ['example.com/kopf']
    custom.patch_namespaced_custom_object(GROUP, VERSION, NAMESPACE, PLURAL, 'g', {'spec': {'to': 'all'}})
    until('the change', lambda: core.read_namespaced_config_map('g', NAMESPACE).data == {'text': 'hello all'})
    until('the event', lambda: [e for e in core.list_namespaced_event(NAMESPACE).items if e.reason == 'Greeted'])
    custom.delete_namespaced_custom_object(GROUP, VERSION, NAMESPACE, PLURAL, 'g')
    until('the end', lambda: gone(read))
    assert gone(lambda: core.read_namespaced_config_map('g', NAMESPACE))
finally:
    stop.set()
    operator.join(60)
assert not failed, failed
print('ok')
