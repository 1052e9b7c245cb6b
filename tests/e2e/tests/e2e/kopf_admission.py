"""The admission of an operator with `kopf`: it registers its webhooks by itself, refuses, warns and changes objects."""
import asyncio
import os
import threading
import time

import kopf
from kubernetes import client, config
from kubernetes.client.rest import ApiException

NAMESPACE = 'default'
config.load_kube_config(os.environ['KUBECONFIG'])
core, registration = client.CoreV1Api(), client.AdmissionregistrationV1Api()
seen = []


@kopf.on.startup()
def settings(settings: kopf.OperatorSettings, **_):
    settings.posting.enabled = False
    settings.admission.managed = 'operator.example.com'
    settings.admission.server = kopf.WebhookServer(
        addr='127.0.0.1', host='127.0.0.1',
        certfile=os.environ['WEBHOOK_CERTIFICATE'], pkeyfile=os.environ['WEBHOOK_KEY'])


@kopf.on.mutate('configmaps', labels={'managed': 'yes'})
def add_size(body, patch, operation, dryrun, userinfo, **_):
    seen.append((operation, dryrun, userinfo['username']))
    patch.metadata.annotations['example.com/size'] = str(len(body.get('data', {})))


@kopf.on.validate('configmaps', labels={'managed': 'yes'}, operation='CREATE')
def check(body, warnings, **_):
    assert body.metadata.annotations['example.com/size'], 'it runs after the changes'
    if 'forbidden' in body.get('data', {}):
        raise kopf.AdmissionError('no such key here', code=422)
    if not body.get('data'):
        warnings.append('this map is empty')


@kopf.on.validate('configmaps', labels={'managed': 'yes'}, operation='DELETE')
def keep(old, **_):
    if old.get('data', {}).get('keep') == 'true':
        raise kopf.AdmissionError('it is to be kept', code=409)


def until(what, holds, seconds=60):
    """Waits for a condition."""
    end = time.time() + seconds
    while True:
        value = holds()
        if value:
            return value
        assert time.time() < end, f'waited in vain: {what}'
        time.sleep(0.1)


def config_map(name, data):
    return {'metadata': {'name': name, 'labels': {'managed': 'yes'}}, 'data': data}


def create(name, data, **options):
    return core.create_namespaced_config_map(NAMESPACE, config_map(name, data), **options)


def refused(call):
    try:
        call()
    except ApiException as e:
        return e.status, e.body
    raise AssertionError('it is admitted')


stop, failed = threading.Event(), []


def run():
    try:
        asyncio.run(kopf.operator(stop_flag=stop, namespaces=[NAMESPACE], standalone=True))
    except BaseException as e:
        failed.append(e)


registration.create_mutating_webhook_configuration({'metadata': {'name': 'operator.example.com'}})
registration.create_validating_webhook_configuration({'metadata': {'name': 'operator.example.com'}})
operator = threading.Thread(target=run)
operator.start()
try:
    mutating = lambda: registration.read_mutating_webhook_configuration('operator.example.com').webhooks
    validating = lambda: registration.read_validating_webhook_configuration('operator.example.com').webhooks
    until('the webhooks', lambda: len(mutating() or []) == 1 and len(validating() or []) == 2)
    until('a call', lambda: (create('probe', {}, dry_run='All').metadata.annotations or {}).get('example.com/size'))
    made = create('a', {'x': '1', 'y': '2'})
    assert made.metadata.annotations == {'example.com/size': '2'}, made
    code, body = refused(lambda: create('b', {'forbidden': '1'}))
    assert code == 422 and 'denied the request: no such key here' in body, (code, body)
    _, _, headers = core.create_namespaced_config_map_with_http_info(NAMESPACE, config_map('empty', {}))
    assert 'this map is empty' in headers.get('Warning', ''), headers
    changed = core.patch_namespaced_config_map('a', NAMESPACE, {'data': {'z': '3', 'keep': 'true'}})
    assert changed.metadata.annotations == {'example.com/size': '4'}, changed
    code, body = refused(lambda: core.delete_namespaced_config_map('a', NAMESPACE))
    assert code == 409 and 'it is to be kept' in body, (code, body)
    core.delete_namespaced_config_map('empty', NAMESPACE)
    unmanaged = core.create_namespaced_config_map(NAMESPACE, {'metadata': {'name': 'c'}, 'data': {'forbidden': '1'}})
    assert not unmanaged.metadata.annotations, unmanaged
    assert ('CREATE', True) in {(operation, dry_run) for operation, dry_run, _ in seen}, seen
    assert ('UPDATE', False) in {(operation, dry_run) for operation, dry_run, _ in seen}, seen
finally:
    stop.set()
    operator.join(60)
assert not failed, failed
print('ok')
