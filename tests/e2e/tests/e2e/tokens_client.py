"""A token asked for, used and at its end, with the `kubernetes` package; the kubeconfig comes from the environment."""
import os

from kubernetes import client, config
from kubernetes.client.rest import ApiException

config.load_kube_config(os.environ['KUBECONFIG'])
admin = client.CoreV1Api()
pod = admin.read_namespaced_pod('p', 'default')
reference = client.V1BoundObjectReference(api_version='v1', kind='Pod', name='p', uid=pod.metadata.uid)
request = client.AuthenticationV1TokenRequest(
    spec=client.V1TokenRequestSpec(audiences=[], expiration_seconds=600, bound_object_ref=reference))
made = admin.create_namespaced_service_account_token('bot', 'default', request)
assert made.spec.expiration_seconds == 600 and made.status.expiration_timestamp, made

settings = client.Configuration.get_default_copy()
settings.cert_file = settings.key_file = None
settings.api_key = {'authorization': 'Bearer ' + made.status.token}
bot = client.ApiClient(settings)
core, authentication = client.CoreV1Api(bot), client.AuthenticationV1Api(bot)

assert [x.metadata.name for x in core.list_namespaced_pod('default').items] == ['p']
who = authentication.create_self_subject_review(client.V1SelfSubjectReview()).status.user_info
assert who.username == 'system:serviceaccount:default:bot', who
assert who.extra['authentication.kubernetes.io/pod-uid'] == [pod.metadata.uid], who
try:
    core.delete_namespaced_pod('p', 'default')
    raise AssertionError('a viewer deleted a pod')
except ApiException as e:
    assert e.status == 403, e

review = client.V1TokenReview(spec=client.V1TokenReviewSpec(token=made.status.token))
reviews = client.AuthenticationV1Api()
assert reviews.create_token_review(review).status.authenticated
admin.delete_namespaced_pod('p', 'default', grace_period_seconds=0)
review.spec.audiences = ['https://kubernetes.default.svc', 'elsewhere']
status = reviews.create_token_review(review).status
assert not status.authenticated and 'has been invalidated' in status.error, status
print('ok')
