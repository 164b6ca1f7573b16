"""The Korean of each phrase of a report; `{names}` in braces are values, which both languages have."""

from collections.abc import Mapping

KOREAN: Mapping[str, str] = {
    # Titles
    "{task} with {model}": "{model} · {task}",
    "Pretraining of {model}": "{model} 사전 학습",
    "Further pretraining of {model}": "{model} 추가 사전 학습",
    "Text classification": "텍스트 분류",
    "Regression on texts": "텍스트 회귀",
    "Choice of an ending": "이어질 문장 고르기",
    "Reading comprehension": "기계 독해",
    "Sentence vectors": "문장 벡터",
    "Tagging of words": "단어 태깅",
    "Dependency parsing": "의존 구문 분석",
    "Named entities": "개체명 인식",
    "Ranking of passages": "문단 순위 매기기",
    "a reader": "독해 네트워크",
    "a tagger": "태거",
    "a parser": "파서",
    "a biattentive classification network": "BCN",
    "a network": "네트워크",
    "Run directory: {name}": "실행 디렉터리: {name}",
    # Result
    "Result": "결과",
    "{score} {value} on {part}": "{part} {score} {value}",
    "95% interval: {low} to {high}": "95% 신뢰 구간: {low}~{high}",
    "{count} rows": "{count}행",
    "{count} rows: one row is {points} points": "{count}행이므로 한 행이 {points}점",
    "{count} questions: one question is {points} points": "질문 {count}개이므로 질문 하나가 {points}점",
    "{count} rows: one row is {points} points of accuracy": "{count}행이므로 한 행이 정확도 {points}점",
    "{count} sentences of {number} words: one word is {points} points": (
        "문장 {count}개, 단어 {number}개이므로 한 단어가 {points}점"
    ),
    "{count} sentences with {number} entities: one entity is {points} points of recall": (
        "문장 {count}개, 개체명 {number}개이므로 개체명 하나가 재현율 {points}점"
    ),
    "The best checkpoint, of step {step} of {steps}, chosen by {score} on dev.": (
        "전체 {steps}스텝 가운데 dev의 {score} 점수가 가장 높은 {step}스텝의 체크포인트입니다."
    ),
    "The rows of dev chose the checkpoint, so this score is a little too good; --test=FILE gives a fair one.": (
        "dev로 체크포인트를 골랐으므로 점수가 조금 높게 나옵니다. --test=FILE을 주면 공정한 점수를 얻습니다."
    ),
    "No better than the baseline “{name}” ({value}): this model has learned nothing more.": (
        "기준선 ‘{name}’({value})보다 낫지 않습니다. 모델이 그 이상 배운 것이 없습니다."
    ),
    "Worse than the baseline “{name}” ({value}): train longer, with another learning rate or model, or more data.": (
        "기준선 ‘{name}’({value})보다 낮습니다. 더 오래, 다른 학습률이나 모델로, 또는 더 많은 데이터로 학습해 보세요."
    ),
    "The interval includes the baseline “{name}” ({value}): these rows do not show that the model is better.": (
        "기준선 ‘{name}’({value})도 신뢰 구간 안에 있습니다. 이 데이터만으로는 모델이 더 낫다고 할 수 없습니다."
    ),
    "Better than the best baseline, “{name}” ({value}).": "가장 높은 기준선 ‘{name}’({value})보다 낫습니다.",
    "score": "점수",
    "this model": "이 모델",
    "always '{label}'": "항상 '{label}'",
    "always choice {number}": "항상 {number}번",
    "always no answer": "항상 답 없음",
    "bag of words": "단어 가방(BoW)",
    "the usual tag of each word": "단어별 최빈 태그",
    "each word's neighbour is its head": "이웃 단어가 지배소",
    "There was no evaluation on held-out text.": "검증용 텍스트로 평가한 적이 없습니다.",
    "At step {best} of {last}, the best checkpoint by {score} on held-out text.": (
        "전체 {last}스텝에서 저장한 체크포인트 가운데 검증용 텍스트의 {score}가 가장 좋은 {best}스텝의 값입니다."
    ),
    "before the first step": "학습 전",
    "best, step {step}": "최고({step}스텝)",
    "last, step {step}": "마지막({step}스텝)",
    # Model and data
    "Model": "모델",
    "model": "모델",
    "parameters": "파라미터 수",
    "weights before training": "학습 전 가중치",
    "random numbers (seed {seed})": "난수(시드 {seed})",
    "encoder that it reads": "입력 인코더",
    "sizes": "크기",
    "tokenizer": "토크나이저",
    "trained part": "학습하는 부분",
    "Data": "데이터",
    "rows": "행 수",
    "file": "파일",
    "fingerprint": "지문",
    "{share} of train, held out": "train에서 떼어 둔 {share}",
    "weight": "가중치",
    "documents": "문서 수",
    "sentences": "문장 수",
    "tokens": "토큰 수",
    "words": "단어 수",
    "characters": "글자 수",
    "bytes": "바이트 수",
    "pairs": "쌍의 수",
    "unknown": "미등록 토큰 수",
    "skipped": "건너뛴 수",
    "label": "레이블",
    "lowest": "최솟값",
    "mean": "평균",
    "highest": "최댓값",
    "with an answer": "답 있음",
    "without an answer": "답 없음",
    "choice {number}": "{number}번",
    "{count} more labels are not shown.": "그 밖의 레이블 {count}개는 생략했습니다.",
    # Predictions
    "Predictions": "예측값",
    "predicted (up), expected (across)": "예측값(세로)과 정답(가로)",
    "Each dot is one example; on the diagonal, the prediction is exact.": (
        "점 하나가 예시 하나입니다. 대각선 위의 점은 정확히 맞힌 것입니다."
    ),
    "expected": "정답",
    "predicted": "예측",
    "Confusion (rows: expected, columns: predicted)": "혼동 행렬(행: 정답, 열: 예측)",
    "times": "횟수",
    "Entities": "개체명",
    "Relations": "의존 관계",
    "relation": "관계",
    "right heads": "지배소 정답률",
    "right heads and relations": "지배소와 관계 정답률",
    "type": "유형",
    "precision": "정밀도",
    "recall": "재현율",
    "f1": "F1",
    "gold": "정답 수",
    "correct": "맞힌 수",
    "The surest mistakes": "가장 확신한 오답",
    "The largest errors": "오차가 가장 큰 예측",
    "text": "텍스트",
    "off by": "오차",
    "probability": "확률",
    "where": "위치",
    "(no answer)": "(답 없음)",
    "Attention over {where}, mean of the heads": "{where}의 어텐션(헤드 평균)",
    "The stronger the colour, the more the piece on the left attends to the piece on top.": (
        "색이 진할수록 왼쪽 조각이 위쪽 조각에 더 많이 주목합니다."
    ),
    "layer {number}": "{number}층",
    "The first {shown} of {count} pieces.": "전체 {count}조각 가운데 앞의 {shown}조각입니다.",
    "Weights of the encoder's layers": "인코더 층의 가중치",
    "at": "위치",
    "Perplexity of held-out texts of the task": "과제의 검증용 텍스트에서 측정한 퍼플렉서티",
    "language model": "언어 모델",
    "before": "전",
    "after": "후",
    "Translations of held-out texts": "검증용 텍스트의 번역",
    "source": "원문",
    "translation": "번역",
    "reference": "참조 번역",
    "{count} texts: {figures}.": "텍스트 {count}개: {figures}.",
    "The mean of the last checkpoints": "마지막 체크포인트들의 평균",
    "The mean of the checkpoints of steps {steps}, which load reads.": (
        "{steps}스텝 체크포인트의 평균입니다. load는 이것을 읽습니다."
    ),
    "Next steps": "다음 단계",
    "Its vectors, in Python": "파이썬에서 벡터 얻기",
    "Other uses of a word in your texts with a similar meaning": "텍스트에서 뜻이 비슷하게 쓰인 단어 찾기",
    "A task of your own: a table with a column of texts and one of labels": (
        "텍스트 열과 레이블 열이 있는 표로 미세 조정하기"
    ),
    "Its translations, in Python": "파이썬에서 번역하기",
    # Sweeps and searches
    "gain": "향상",
    "paper": "논문",
    "{row} (reference)": "{row}(기준)",
    "{score} ({count} of {seeds} seeds)": "{score}(시드 {seeds}개 중 {count}개)",
    "mean ± standard deviation over {seeds} seeds": "시드 {seeds}개의 평균 ± 표준 편차",
    "one seed": "시드 하나",
    "Measured ({how}): {scores}.": "측정한 점수({how}): {scores}.",
    "The paper's figures: {source}.": "논문의 수치: {source}.",
    "A gain is the difference to the row above, with its 95% interval over the seeds (Student's t, paired).": (
        "향상은 바로 위 행과의 차이이며, 괄호 안은 시드를 짝지어 구한 95% 신뢰 구간입니다(스튜던트 t)."
    ),
    "One seed: no test for chance.": "시드가 하나뿐이어서 우연인지 검정하지 않았습니다.",
    "No row is marked: the reference row, {row}, has no cells at this scale.": (
        "기준 행 {row}에 이 규모의 칸이 없어서 표시한 행이 없습니다."
    ),
    "\\* differs from the reference row, {row}, by a paired t-test over the seeds (p < {level}, two-sided). "
    "{seeds} seeds detect only large differences: the mean difference must be {least} times the standard deviation "
    "of the differences.": (
        "\\* 기준 행({row})과 다릅니다(시드를 짝지은 t 검정, 양측, p < {level}). "
        "시드 {seeds}개로는 큰 차이만 찾아냅니다. 평균 차이가 차이들의 표준 편차의 {least}배는 되어야 합니다."
    ),
    "No test and no mark where all seeds differ by the same from the reference row: {places}.": (
        "모든 시드에서 기준 행과의 차이가 똑같은 곳은 검정하거나 표시하지 않았습니다: {places}."
    ),
    "once": "한 번",
    "{count} times": "{count}번",
    "Each seed has a pretraining of its own, so the deviations show its variation, too.": (
        "시드마다 사전 학습을 따로 했으므로 표준 편차에 사전 학습의 변동도 들어 있습니다."
    ),
    "The seeds vary the task only: each row has one pretraining, and they do not show its variation.": (
        "시드는 과제 학습에만 적용됩니다. 행마다 사전 학습은 한 번뿐이어서 그 변동은 나타나지 않습니다."
    ),
    "Compared {times}: {chance} would be marked by chance if no row differed; {marked} are. {varied}": (
        "{times} 비교했습니다. 아무 차이가 없어도 우연히 {chance}개가 표시되며, 실제로 표시된 것은 {marked}개입니다. "
        "{varied}"
    ),
    "{column}: {order}": "{column}: {order}",
    "{first}; {second}": "{first}; {second}",
    "the order of rows says nothing here: all of ours are equal.": (
        "우리 점수가 모두 같아서 행의 순서로는 알 수 있는 것이 없습니다."
    ),
    "order of rows as the paper's: Kendall's τ = {tau}, all {pairs} pairs agree.": (
        "논문과 비교한 행의 순서: 켄달의 τ = {tau}, {pairs}쌍이 모두 일치합니다."
    ),
    "{better} > {worse} (paper by {paper}, here {ours}{noise}{by_chance})": (
        "{better} > {worse}(논문에서는 {paper} 차이, 여기서는 {ours}{noise}{by_chance})"
    ),
    ": within chance": ", 우연의 범위 안",
    "order of rows as the paper's: Kendall's τ = {tau}, {agree} of {pairs} pairs agree; not so {notes}.": (
        "논문과 비교한 행의 순서: 켄달의 τ = {tau}, {pairs}쌍 중 {agree}쌍이 일치합니다. 일치하지 않는 쌍: {notes}."
    ),
    "The plot of the sweep's file fails: {error}": "스윕 파일의 그림을 그리지 못했습니다: {error}",
    "{ready} of {count} runs done.": "실행 {count}개 중 {ready}개가 끝났습니다.",
    "Scale {scale}.": "규모는 {scale}입니다.",
    "{seconds} seconds of runs, one after the other. The whole sweep:": (
        "실행 시간을 모두 더하면 {seconds}초입니다. 전체 스윕의 명령:"
    ),
    "What it cost": "비용",
    "What it is": "설명",
    "seed {seed}": "시드 {seed}",
    "shared": "공유",
    "seconds unknown": "시간 모름",
    "not done": "끝나지 않음",
    "{count} starts": "{count}회 시작",
    "its report": "이 실행의 보고서",
    "Search for {score}": "{score} 탐색",
    "best": "최고",
    "Each dot is the best score of all trials up to there.": "점은 그때까지 한 모든 시도의 최고 점수입니다.",
    "The best so far": "그때까지의 최고",
    "trial": "시도",
    "trial {number}": "시도 {number}",
    "end": "상태",
    "steps": "스텝 수",
    "done": "끝남",
    "ended early": "일찍 끝냄",
    "failed": "실패",
    "The search": "탐색",
    "The trials": "시도 목록",
    # Studies of layers
    "{study}: {models}": "{study}: {models}",
    "Probes of each layer": "층별 프로빙",
    "Probes by the size of their training data": "학습 데이터의 양에 따른 프로빙",
    "Registers of texts": "글의 종류와 말투",
    "Senses of words": "단어의 의미",
    "Neighbours of words in context": "문맥 속 단어의 이웃",
    "One sentence": "한 문장",
    "Attention heads and grammatical relations": "어텐션 헤드와 문법 관계",
    "Layer weights of tasks": "과제가 배운 층 가중치",
    "Senses of the toy world": "토이 월드의 단어 의미",
    "task": "과제",
    "encoder": "인코더",
    "layer": "층",
    "of": "평가한 수",
    "note": "비고",
    "word": "단어",
    "cosine": "코사인",
    "score in %": "점수(%)",
    "{task} by layer": "층별 {task}",
    "{task} by share of data": "데이터 비율별 {task}",
    "{name}, layer {layer}": "{name}, {layer}층",
    "% of the training sentences": "학습 문장의 비율(%)",
    "most frequent of the word": "단어별 최빈 레이블",
    "{labels} labels, {words} words of training": "레이블 {labels}개, 학습 단어 {words}개",
    "dev {score}, penalty {strength}": "dev {score}, 페널티 {strength}",
    "{note}, not converged": "{note}, 수렴하지 않음",
    "± {deviation} over {seeds} seeds": "시드 {seeds}개의 표준 편차 ± {deviation}",
    "as printed: Penn Treebank tags": "논문의 수치, 펜 트리뱅크 태그",
    "as printed: the test sets of Raganato et al. 2017": "논문의 수치, Raganato 외 2017의 평가 데이터",
    "first sense (Peters et al. 2018)": "최빈 의미(Peters et al. 2018)",
    "Each dot is the score of one layer on test text; a level line is a score that belongs to no layer.": (
        "점은 평가 텍스트에서 측정한 층 하나의 점수이고, 수평선은 층과 관계없는 점수입니다."
    ),
    "senses": "의미",
    "senses, of words with several in training": "의미(학습 데이터에 의미가 여럿인 단어만)",
    "first sense": "최빈 의미",
    "{count} of training; {unseen} words not in it have WordNet's first sense": (
        "학습 단어 {count}개. 학습에 없는 단어 {unseen}개에는 WordNet의 첫째 의미를 씀"
    ),
    "Neighbours of {word}": "‘{word}’의 이웃",
    "{name}: words near {word}": "{name}: ‘{word}’에 가까운 단어",
    "{pattern} occurs {count} times in the text. For the {word} in your sentence, here are the occurrences whose "
    "vectors are nearest in a layer, with their cosine: at most 1.000, the same direction.": (
        "텍스트에 ‘{pattern}’ 단어가 {count}번 나옵니다. 지정한 문장의 ‘{word}’와 층마다 벡터가 가장 가까운 자리와 "
        "코사인을 보여 줍니다. 코사인은 방향이 같을 때 가장 큰 1.000입니다."
    ),
    "{pattern} occurs {count} times in the text. For {queries} of them, spread evenly over the text, here are the "
    "other occurrences whose vectors are nearest in a layer, with their cosine: at most 1.000, the same direction.": (
        "텍스트에 ‘{pattern}’ 단어가 {count}번 나옵니다. 그중 고르게 뽑은 {queries}곳마다, 층별로 벡터가 가장 가까운 "
        "다른 자리와 코사인을 보여 줍니다. 코사인은 방향이 같을 때 가장 큰 1.000입니다."
    ),
    "attention: {relation}": "어텐션: {relation}",
    "any, of a pronoun": "대명사의 모든 관계",
    "offset {number}": "고정 거리 {number}",
    "from the dependant to its head": "의존소에서 지배소로",
    "from the head to the dependant": "지배소에서 의존소로",
    "head {number}, {direction}": "헤드 {number}, {direction}",
    "{note}; {count} sentences left out": "{note}. 너무 긴 문장 {count}개는 뺌",
    "{relation}, {direction}: {name} (one row per layer, one column per head)": (
        "{relation}, {direction}: {name}(행은 층, 열은 헤드)"
    ),
    "weights: {path}": "가중치: {path}",
    "{name}: softmax of the weights": "{name}: 가중치의 소프트맥스",
    "The larger the share of a layer, the more the task uses it; the shares add up to 1.": (
        "비율이 클수록 과제가 그 층을 많이 씁니다. 비율의 합은 1입니다."
    ),
    "{word} ({language}), centroid": "{word}({language}), 가장 가까운 중심",
    "{word} ({language}), probe": "{word}({language}), 프로브",
    "chance": "무작위",
    "{count} senses": "의미 {count}개",
    "ideal reader": "이상적인 독자",
    "reads the sentence alone": "문장만 보고 판단함",
    "along the probe's direction": "프로브의 방향",
    "along the largest other difference": "그 밖에 가장 크게 다른 방향",
    "{word}: {name}, layer {layer}, {share} right": "{word}: {name}, {layer}층, 정확도 {share}",
    "{count} different vectors": "서로 다른 벡터 {count}개",
    "one vector": "벡터 하나",
    "The {count} examples have only {vectors}, because this layer sees no context; the numbers count them.": (
        "이 층은 문맥을 보지 않아서 예시 {count}개의 벡터가 {vectors}뿐입니다. 숫자는 겹친 예시의 수입니다."
    ),
    "Each dot is one measurement; a line connects the dots of one name.": (
        "점 하나가 측정값 하나이고, 같은 이름의 점을 선으로 이었습니다."
    ),
    "The thin line is every step, the thick line a running mean.": (
        "가는 선은 스텝마다의 값, 굵은 선은 이동 평균입니다."
    ),
    "The shares of a group add up to 1.": "한 묶음의 비율을 더하면 1입니다.",
    "Each dot is one example, in the colour of its group; larger ones are several, with their number.": (
        "점 하나가 예시 하나이고 색은 묶음을 나타냅니다. 여러 예시가 겹친 큰 점에는 그 수를 적었습니다."
    ),
    "The stronger the colour, the larger the value; the scale ends at the largest one.": (
        "색이 진할수록 값이 큽니다. 눈금의 끝이 가장 큰 값입니다."
    ),
    "The wider a line, the more the word on the left attends to the word on the right.": (
        "선이 굵을수록 왼쪽 단어가 오른쪽 단어에 더 많이 주목합니다."
    ),
    # Command and curves
    "Command": "명령",
    "Settings": "설정",
    "All settings": "모든 설정",
    "Curves": "학습 곡선",
    "{count} steps. A thin line is every step, a thick line a running mean.": (
        "전체 {count}스텝입니다. 가는 선은 스텝마다의 값, 굵은 선은 이동 평균입니다."
    ),
    "From {first} to {last}; never below {low}, never above {high}.": (
        "처음 {first}, 마지막 {last}. 최솟값 {low}, 최댓값 {high}."
    ),
    "step": "스텝",
    "share right, from 0 to 1 (higher is better)": "맞힌 비율, 0~1(높을수록 좋음)",
    "perplexity (lower is better)": "퍼플렉서티(낮을수록 좋음)",
    "nats (lower is better)": "내트(낮을수록 좋음)",
    "factor of an update": "갱신 크기의 배수",
    # Remarks
    "The warm-up, {warmup} steps, is not shorter than the run of {steps}: the learning rate rises to its end.": (
        "워밍업이 {warmup}스텝으로 전체 {steps}스텝보다 짧지 않아서, 학습률이 끝까지 오르기만 합니다."
    ),
    "The loss or a gradient was not finite in {count} steps ({shown}), which updated nothing.": (
        "{count}스텝에서 손실이나 기울기가 유한하지 않아 갱신하지 않았습니다({shown})."
    ),
    "{name} was not finite at its first measurement (step {step}).": (
        "{name}: 처음 측정한 값({step}스텝)이 유한하지 않습니다."
    ),
    "{name} rose from {low} (step {before}, the best before) to a number that is not finite (step {step}).": (
        "{name}: {low}({before}스텝, 그때까지의 최고)에서 유한하지 않은 값({step}스텝)으로 올랐습니다."
    ),
    "{name} rose from {low} (step {before}, the best before) to {number} (step {step}).": (
        "{name}: {low}({before}스텝, 그때까지의 최고)에서 {number}({step}스텝)로 올랐습니다."
    ),
    "The model gives every word of the dev data the label {label}, and the data have {count} labels: it has learned "
    "nothing but this. Try another learning rate, more epochs, or another seed.": (
        "모델이 dev의 모든 단어에 레이블 {label}만 붙였습니다. 데이터의 레이블은 {count}개이므로 배운 것이 없는 "
        "셈입니다. 학습률이나 시드를 바꾸거나 에포크를 늘려 보세요."
    ),
    "The model gives every example of the dev data the label {label}, and the data have {count} labels: it has learned "
    "nothing but this. Try another learning rate, more epochs, or another seed.": (
        "모델이 dev의 모든 예시에 레이블 {label}만 붙였습니다. 데이터의 레이블은 {count}개이므로 배운 것이 없는 "
        "셈입니다. 학습률이나 시드를 바꾸거나 에포크를 늘려 보세요."
    ),
    "The model gives all examples of the dev data about {number}, and the data have {low} to {high}: it has learned "
    "nothing but their mean. Try a lower learning rate, more epochs, or another seed.": (
        "모델이 dev의 모든 예시에 {number}에 가까운 값만 냈습니다. 데이터의 값은 {low}부터 {high}까지이므로 평균밖에 "
        "배우지 못한 셈입니다. 학습률을 낮추거나 시드를 바꾸거나 에포크를 늘려 보세요."
    ),
    "The model finds no answer to any of the {count} questions of the dev data, and {answered} have one: it has "
    "learned nothing but this. Try another learning rate, more epochs, or another seed.": (
        "모델이 dev의 질문 {count}개 모두에 답이 없다고 했습니다. 답이 있는 질문은 {answered}개이므로 배운 것이 없는 "
        "셈입니다. 학습률이나 시드를 바꾸거나 에포크를 늘려 보세요."
    ),
}
